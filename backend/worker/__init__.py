"""The job process: claims jobs and runs them, and queues what is due.

- `lanes`     what runs side by side, and what every job process does at its start and end
- `embedded`  one process, a thread per lane, looks into the database (the default)
- `over_rq`   with REDIS_URL: hears RQ's rings; each lane has a process of its own
- `lane`      that process
"""

from backend.worker.embedded import Worker
from backend.worker.lanes import be_nice, stop_on_signals, stop_with_parent

__all__ = ["Worker", "be_nice", "stop_on_signals", "stop_with_parent"]
