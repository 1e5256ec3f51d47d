"""What people see of a project's statistics: tables, charts and pages in HTML, one report file, and exports.

Everything here is a pure function of documents that a job has made (`backend.services.statistics.documents`); nothing
is computed from votes. Text that comes from elsewhere (names, labels, tasks) is escaped by Jinja or by `svg`.
"""
