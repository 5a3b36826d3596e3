"""What a person does about each termination reason: the runbook sentence of `explain`."""

from __future__ import annotations

from types import MappingProxyType

from trackway_common.events import TerminationReason as Reason

HINTS = MappingProxyType(
    {
        Reason.COMPLETED: "Nothing to do: training finished by itself.",
        Reason.EARLY_STOPPED: "Nothing to do: a stopping rule ended the training on purpose.",
        Reason.CANCELLED_BY_USER: (
            "Nothing to do: somebody cancelled the run. What was committed stays; a clone begins at step 0."
        ),
        Reason.CANCELLED_BY_ADMIN: (
            "An administrator cancelled the run; ask the person named in the evidence before you submit it again."
        ),
        Reason.DEADLINE_EXCEEDED: (
            "The run's deadline passed. Submit it with a later deadline, or with fewer steps or more ranks."
        ),
        Reason.PREEMPTED_SCHEDULER: (
            "The scheduler took the capacity for other work. If it happens without progress, checkpoint more often."
        ),
        Reason.PREEMPTED_SPOT: (
            "The provider reclaimed the machine. Checkpoint more often, or use a class that is not preemptible."
        ),
        Reason.NODE_DRAIN: "The node was drained for maintenance; the run goes on elsewhere by itself.",
        Reason.WALLTIME: (
            "The allocation's wall time ended. Checkpoint at least once per allocation, or ask for a longer one."
        ),
        Reason.NODE_LOST: "A node or the cluster's head went away. Look at that node's health if it is named again.",
        Reason.DEVICE_HARDWARE: (
            "A device reported a hardware fault. Have the device named in the evidence taken out of service."
        ),
        Reason.NETWORK_FABRIC: (
            "The network between ranks failed. Check links and switch ports of the nodes in the placement."
        ),
        Reason.RENDEZVOUS_FAILED: (
            "The ranks did not find each other. Check that the nodes reach one another on the rendezvous port."
        ),
        Reason.COLLECTIVE_TIMEOUT: (
            "A collective never completed. Compare the ranks' stacks: the rank that is elsewhere is the one to look at."
        ),
        Reason.STALLED: "Steps stopped while processes lived. The stacks say where: usually a data loader or a lock.",
        Reason.DEVICE_OOM: (
            "Device memory ran out, and the same shape would run out again. Lower the micro-batch, or name its "
            "key and that of accumulation under `tunable` so that it is halved for you."
        ),
        Reason.HOST_OOM: (
            "Host memory ran out, and the same shape would run out again. Use fewer loader workers (named under "
            "`tunable` they are halved for you) or a class with more memory per rank."
        ),
        Reason.STORAGE_FULL: "The store is full. Free space, then release the run.",
        Reason.STORAGE_TRANSIENT: (
            "The store answered with errors that usually pass. If they stay, check the store's own health."
        ),
        Reason.CHECKPOINT_CORRUPT: "A committed checkpoint no longer matches its digests. Check the disk it lies on.",
        Reason.CHECKPOINT_INCOMPATIBLE: (
            "The checkpoint does not fit the model or world size that tried to load it. Start a new run, or "
            "give the shape that it was written with."
        ),
        Reason.CONFIG_INVALID: (
            "The configuration can't run as written. Correct the field named in the evidence and submit again."
        ),
        Reason.ADMISSION_INFEASIBLE: (
            "No pool can ever hold this run. Ask for fewer ranks or for another compute class."
        ),
        Reason.DATA_SCHEMA_DRIFT: (
            "The data's schema differs from its contract. Repair the data or its contract, snapshot, submit again."
        ),
        Reason.DATA_CORRUPT: (
            "A file of the dataset no longer matches its digest. Restore the file or snapshot the dataset "
            "again; retrying bad data does not help."
        ),
        Reason.NUMERIC_DIVERGENCE: (
            "The loss became NaN or infinite. Look at the learning rate, the precision and the batch at that step."
        ),
        Reason.USER_CODE_ERROR: (
            "The training code raised an exception, and would again. Correct it at the traceback's last frame "
            "and submit again."
        ),
        Reason.PROCESS_CRASH: (
            "A rank died of SIGSEGV, SIGABRT, SIGILL or SIGBUS: usually a native library. Compare library "
            "versions with the last attempt that worked."
        ),
        Reason.LAUNCH_FAILED: (
            "The ranks could not be started. The evidence has the launcher's own words; check the node and the runtime."
        ),
        Reason.CAPACITY_TIMEOUT: (
            "The pool did not give the capacity in time; the run was queued again. See who holds the pool."
        ),
        Reason.AGENT_LOST: (
            "The cluster's agent went silent and its cluster could not be reached. Check the agent's host."
        ),
        Reason.PLATFORM_ERROR: (
            "Trackway itself failed. Give the run's id to its operators; the training code is not to blame."
        ),
        Reason.BUDGET_EXHAUSTED: (
            "The money or hours set aside for this run are spent. Ask for more, then have the run released."
        ),
        Reason.QUOTA_REVOKED: "The project's quota was taken back. Ask for quota, then have the run released.",
        Reason.UNKNOWN_KILL: (
            "A rank was killed by SIGKILL and nothing says by whom. Look at the host's kernel log for that second."
        ),
        Reason.UNKNOWN: (
            "Nothing that was collected names a cause. Read the last log lines of the ranks named in the evidence."
        ),
    }
)
