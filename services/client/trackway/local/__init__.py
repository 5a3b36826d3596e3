"""The local stack: a real Kafka, a Ray head, chDB behind ClickHouse's HTTP protocol and the five services.

All are child processes of one supervisor (``python -m trackway.local.supervisor``); state lies in one folder.
"""
