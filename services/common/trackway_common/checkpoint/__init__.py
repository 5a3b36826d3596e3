"""Checkpoints: layout, receipts, manifests and the commit log. No torch, no event loop: any process may use it.

Readers start from the commit log; what no commit entry names does not exist.

A save:    ``write_rank`` in each rank, then ``commit_checkpoint`` once, by the checkpointer.
A resume:  ``raise_fence``, then ``choose_resume_target``, then ``read_file`` per file of the manifest.
"""
