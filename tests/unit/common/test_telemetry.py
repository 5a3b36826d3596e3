"""Log lines are JSON with their fields; the trace context survives a hop through text."""

from __future__ import annotations

import json
import logging

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from trackway_common.telemetry import JsonFormatter, current_traceparent, span


def test_a_log_line_holds_its_fields_and_its_exception():
    try:
        raise ValueError("no")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.makeLogRecord({"msg": "lease expired", "levelname": "INFO", "run_id": "r1", "exc_info": info})
    line = json.loads(JsonFormatter("scheduler").format(record))
    assert (line["message"], line["service"], line["run_id"]) == ("lease expired", "scheduler", "r1")
    assert "ValueError: no" in line["exception"]


def test_a_span_continues_the_trace_it_is_given():
    trace.set_tracer_provider(TracerProvider())
    with span("submit"):
        carried = current_traceparent()
    assert current_traceparent() == ""
    with span("place", traceparent=carried):
        assert current_traceparent().split("-")[1] == carried.split("-")[1]
        assert current_traceparent() != carried
