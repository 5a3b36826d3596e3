"""Explain an attempt from its run's facts: structured, then as text, Markdown, an incident report or JSON values."""

from trackway_common.history.explain.build import explain
from trackway_common.history.explain.markdown import as_markdown
from trackway_common.history.explain.model import Explanation
from trackway_common.history.explain.postmortem import as_postmortem
from trackway_common.history.explain.subject import Surroundings
from trackway_common.history.explain.text import as_text

__all__ = ["Explanation", "Surroundings", "as_markdown", "as_postmortem", "as_text", "explain"]
