"""How jobs reach a job process, and how the embedded job process is kept alive.

The row in the database is the queue; what differs between queues is only how a process learns that there is work:
`embedded` looks into the database, `doorbell` and `lane_worker` ring and listen over Redis with RQ (imported only where
REDIS_URL is set). `supervisor` and `lane_process` keep the processes alive that do the work.
"""

from backend.queues.base import JobQueue
from backend.queues.embedded import EmbeddedQueue
from backend.queues.supervisor import Supervisor

__all__ = ["EmbeddedQueue", "JobQueue", "Supervisor"]
