"""A run spec as written → the same as data; what only the surroundings can tell is still missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trackway_common.canonical import Json, canonical_json, digest, digest_bytes
from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.events import CodeRef, ComputeRef, EvaluationPackRef, Price, RunSpec, RuntimeRef
from trackway_common.fields import Fields
from trackway_common.reasons import MAX_ATTEMPTS

from trackway_scheduler.domain.spec import parts
from trackway_scheduler.domain.spec.failure_rules import failure_rules
from trackway_scheduler.domain.spec.limits import limits, non_finite_loss
from trackway_scheduler.domain.spec.mutations import Declared
from trackway_scheduler.domain.spec.references import datasets
from trackway_scheduler.domain.spec.retries import retries
from trackway_scheduler.domain.spec.tunables import tunable as read_tunable

API_VERSION = "trackway/v1"
KIND = "TrainingRun"
_KNOWN = (
    "apiVersion", "kind", "project", "model_family", "entrypoint", "code", "runtime", "compute", "datasets",
    "topology", "evaluation_pack", "evaluation", "hyperparameters", "tunable", "retry", "max_attempts", "seed",
    "deterministic", "owner", "criticality", "labels", "experiment", "hypothesis", "trigger", "limits", "numerics",
    "failure_rules",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What comes with a run spec: flags that override it, code, caller and chance."""

    caller: str
    drawn_seed: int
    """Taken where the spec names none."""
    datasets: tuple[str, ...] = ()
    compute: str = ""
    evaluation_pack: str = ""
    code: CodeRef = field(default_factory=CodeRef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What was read; usable as far as the violations leave it."""

    spec: RunSpec
    canonical: bytes
    """The spec as submitted, overrides applied; its digest is the spec's."""
    violations: tuple[FieldViolation, ...]


def read_spec(written: Json, submission: Submission) -> Draft:
    """Read every field and note every violation.

    Raises:
        CommandRejected: it holds text that has no UTF-8 form.
    """
    found: list[FieldViolation] = []
    overridden = _overridden(written, submission)
    canonical = _canonical(overridden, "", found)
    fields = Fields(overridden, "", found, _KNOWN)
    spec = _spec(fields, submission, found, digest_bytes(canonical))
    return Draft(spec=spec, canonical=canonical, violations=tuple(dict.fromkeys(found)))


def _overridden(written: Json, submission: Submission) -> Json:
    if not isinstance(written, Mapping):
        return written
    flags: dict[str, Json] = {
        "datasets": list(submission.datasets),
        "compute": submission.compute,
        "evaluation_pack": submission.evaluation_pack,
    }
    return {**written, **{key: value for key, value in flags.items() if value}}


def _spec(fields: Fields, submission: Submission, found: list[FieldViolation], spec_digest: str) -> RunSpec:
    _expect(fields, "apiVersion", API_VERSION)
    _expect(fields, "kind", KIND)
    hyperparameters = fields.mapping("hyperparameters")
    config = _canonical(hyperparameters, "hyperparameters", found)
    tunable = read_tunable(fields, hyperparameters)
    compute = parts.compute(fields)
    declared = Declared(roles=frozenset(one.role for one in tunable), classes=len(compute))
    retry = retries(fields, declared)
    seed = parts.seed(fields)
    return RunSpec(
        project=parts.name(fields, "project"),
        model_family=parts.name(fields, "model_family"),
        owner=fields.text("owner", submission.caller),
        criticality=parts.word(fields, "criticality", ("release", "standard", "experiment"), "experiment"),
        labels=parts.labels(fields),
        experiment=fields.text("experiment", ""),
        hypothesis=fields.text("hypothesis", ""),
        seed=submission.drawn_seed if seed is None else seed,
        seed_drawn=seed is None,
        deterministic=fields.flag("deterministic", False),
        trigger=parts.trigger(fields),
        entrypoint=parts.entrypoint(fields),
        code=_code(fields, submission.code),
        runtime=RuntimeRef(kind=parts.runtime_kind(fields)),
        hyperparameters_json=config.decode(),
        config_digest=digest_bytes(config),
        datasets=datasets(fields),
        compute=ComputeRef(compute_class=compute[0], price=Price()),
        compute_alternatives=tuple(ComputeRef(compute_class=name, price=Price()) for name in compute[1:]),
        topology=parts.topology(fields),
        evaluation_pack=_pack(fields.text("evaluation_pack", "")),
        retry=retry.overrides,
        retry_ceiling=retry.ceiling,
        max_attempts=fields.whole("max_attempts", MAX_ATTEMPTS, at_least=1, at_most=10_000),
        tunable=tunable,
        spec_digest=spec_digest,
        evaluation_model=parts.function(fields.section("evaluation", ("model",)), "model", ""),
        limits=limits(fields),
        failure_rules=failure_rules(fields),
        non_finite_loss=non_finite_loss(fields),
    )


def _expect(fields: Fields, key: str, wanted: str) -> None:
    written = fields.text(key)
    if written and written != wanted:
        fields.violation(key, f"must be {wanted}, not {written!r}")


def _code(fields: Fields, sent: CodeRef) -> CodeRef:
    path = fields.section("code", ("path",)).text("path", ".")
    return CodeRef(
        requested=sent.requested or path,
        archive_digest=sent.archive_digest,
        git_commit=sent.git_commit,
        dirty_diff_digest=sent.dirty_diff_digest,
    )


def _pack(requested: str) -> EvaluationPackRef:
    return EvaluationPackRef(name=requested, requested=requested)


def _canonical(value: Json, within: str, found: list[FieldViolation]) -> bytes:
    try:
        return canonical_json(value)
    except UnicodeEncodeError as error:
        violation = FieldViolation(field="config", description="has an escape that is half a character; write it whole")
        raise CommandRejected(f"config {violation.description}", violations=(violation,)) from error
    except ValueError as error:
        path, _, description = str(error).partition(": ")
        found.append(FieldViolation(field=f"{within}{path.removeprefix('$')}".lstrip("."), description=description))
        return canonical_json({})


def request_digest(config: bytes, pack_body: bytes, submission: Submission) -> str:
    """Identity of a submission's body: the same request id with another one is refused."""
    code = submission.code
    return digest(
        {
            "config": digest_bytes(config),
            "datasets": list(submission.datasets),
            "compute": submission.compute,
            "evaluation_pack": submission.evaluation_pack,
            "evaluation_pack_body": digest_bytes(pack_body),
            "code": [code.requested, code.archive_digest, code.git_commit, code.dirty_diff_digest],
        }
    )
