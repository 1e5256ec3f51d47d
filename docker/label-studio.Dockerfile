# syntax=docker/dockerfile:1
# Label Studio as Polyvox is tested with it (the same package, the same version), with the middleware installed.
#     docker build -f docker/label-studio.Dockerfile -t polyvox-label-studio .

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /build
COPY requirements-label-studio.txt ./
RUN python -m pip install -r requirements-label-studio.txt

FROM python:3.11-slim-bookworm
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/opt/polyvox DJANGO_SETTINGS_MODULE=labelstudio.polyvox_settings \
    LABEL_STUDIO_BASE_DATA_DIR=/data
RUN groupadd --gid 10001 label-studio \
 && useradd --uid 10001 --gid label-studio --no-create-home --home-dir /data --shell /usr/sbin/nologin label-studio \
 && install -d -o label-studio -g label-studio -m 0700 /data
COPY --from=build /opt/venv /opt/venv
COPY labelstudio /opt/polyvox/labelstudio
WORKDIR /data
USER 10001:10001
VOLUME /data
EXPOSE 8080
# The first start makes the database, which takes minutes on a small machine.
HEALTHCHECK --interval=10s --timeout=3s --start-period=300s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health', timeout=2).read()"]
ENTRYPOINT ["label-studio", "start", "--no-browser", "--internal-host", "0.0.0.0", "--port", "8080"]
