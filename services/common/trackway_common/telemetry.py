"""Logs as JSON lines, and one trace from submission to evaluation.

The trace context travels in gRPC metadata and in Kafka headers and envelopes, as a W3C ``traceparent``.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

    from trackway_common.settings import TelemetrySettings

_PROPAGATOR = TraceContextTextMapPropagator()
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, service, logger, message, and the fields given as ``extra``."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False)


def configure_logging(service: str, level: str = "INFO") -> None:
    """Send every log line to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("aiokafka").setLevel(logging.ERROR)


def configure_tracing(service: str, settings: TelemetrySettings) -> None:
    """Record spans and export them as the settings say; without an exporter only the context travels."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(resource=Resource.create({"service.name": f"trackway-{service}"}))
    for processor in _processors(settings):
        provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    propagate.set_global_textmap(_PROPAGATOR)


@contextmanager
def span(name: str, *, traceparent: str = "", **attributes: str | int | float | bool) -> Iterator[Span]:
    """Run a block inside a span: a child of ``traceparent`` when given, else of the current one."""
    with tracer().start_as_current_span(name, context=parent_of(traceparent), attributes=attributes) as current:
        yield current


def tracer() -> Tracer:
    """What Trackway's spans are started by."""
    return trace.get_tracer("trackway")


def parent_of(traceparent: str) -> Context | None:
    """Context whose span a ``traceparent`` names; None, which means the current one, without."""
    return _PROPAGATOR.extract({"traceparent": traceparent}) if traceparent else None


def current_traceparent() -> str:
    """W3C ``traceparent`` of the current span; empty outside of one."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent", "")


def traceparent_of(metadata: Mapping[str, str]) -> str:
    """``traceparent`` among gRPC metadata; empty when there is none."""
    return metadata.get("traceparent", "")


def _processors(settings: TelemetrySettings) -> Iterator[SpanProcessor]:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    if settings.otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        yield BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.otlp_endpoint))
    if settings.trace_file:
        out = Path(settings.trace_file).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115 - lives as long as the process
        yield SimpleSpanProcessor(ConsoleSpanExporter(out=out, formatter=lambda s: s.to_json(indent=None) + "\n"))
