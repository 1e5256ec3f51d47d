"""Backups: one archive with the database, the checkpoints that it names and the key of the annotators' tokens.

`archive` is the file's format, `making` writes one while Polyvox runs, `restoring` puts one into a data folder.
Feature and media caches stay out: they are made again from the tasks.
"""

from backend.services.backup.making import Made, make_backup
from backend.services.backup.restoring import RESTORE, Restored, restore_backup, unfinished

__all__ = ["RESTORE", "Made", "Restored", "make_backup", "restore_backup", "unfinished"]
