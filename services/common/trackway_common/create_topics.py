"""``python -m trackway_common.create_topics``: make the log's missing topics on the cluster of ``TRACKWAY_KAFKA__*``.

Once a cluster, by a user who may create topics; the services need no such right. The local stack does it by itself.
"""

from __future__ import annotations

import asyncio
import sys

from trackway_common.environment import read_settings
from trackway_common.errors import TrackwayError
from trackway_common.kafka_connection import refuse_wrong_credentials
from trackway_common.kafka_topics import ensure_topics
from trackway_common.settings import LogSettings


async def _create() -> None:
    kafka = read_settings(LogSettings).kafka
    await refuse_wrong_credentials(kafka)
    made = await ensure_topics(kafka)
    sys.stdout.write("".join(f"created {name}\n" for name in made) or "every topic is there\n")


def main() -> None:
    """Create them, or say in one line why not."""
    try:
        asyncio.run(_create())
    except TrackwayError as error:
        sys.exit(f"topics were not created: {error}")


if __name__ == "__main__":
    main()
