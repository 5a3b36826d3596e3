"""chDB behind ClickHouse's HTTP protocol, in a process of its own, because chDB takes one process per data folder."""
