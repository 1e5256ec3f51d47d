"""HTTP routes as small blueprints. Handlers read the request, call the served object and shape the answer."""

from __future__ import annotations

from backend.routes import api, explain, filled, health, legacy, metrics, ml, site, status, webhook

BLUEPRINTS = (
    health.blueprint, ml.blueprint, webhook.blueprint, status.blueprint, site.blueprint, explain.blueprint,
    api.blueprint, filled.blueprint, metrics.blueprint, legacy.blueprint,
)
