# kcluster in a container:
#   docker build -t kcluster .
#   docker run --rm -p 9092-9094:9092-9094 kcluster
# With your own topology:
#   docker run --rm -p 19092:19092 -v "$PWD/topology.yaml:/etc/kcluster/topology.yaml:ro" kcluster
# With the HTTP API, for tests in any language (docs/how-to/http-api.md):
#   docker run --rm -p 127.0.0.1:46000:46000 -p 19092-19094:19092-19094 -e KCLUSTER_TOKEN=secret kcluster serve --host 0.0.0.0 --plain-http
# With Spark and Java, for `kcluster pipeline` (docs/how-to/ingest.md); files in /work outlive the container:
#   docker build -t kcluster-spark --target spark .
#   docker run --rm -v "$PWD:/work" kcluster-spark sweep grid.yaml --out sweep
# Outside clients connect to the address that a broker advertises, so publish each port under its own
# number. In the topology, `host` must be 0.0.0.0, and `advertised` the address that the clients reach.

FROM python:3.11-slim AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PIP_CONSTRAINT=/src/constraints.txt \
    PIP_BUILD_CONSTRAINT=/src/constraints.txt
# The compiler is needed only in this stage.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY cluster ./cluster
COPY docs ./docs
COPY scenarios ./scenarios
# The compiled wheel (docs/decisions/003), installed into an environment without pip.
RUN HATCH_BUILD_HOOK_ENABLE_MYPYC=1 pip wheel --no-deps --wheel-dir /wheels .
RUN python -m venv --without-pip /opt/kcluster \
 && pip --python /opt/kcluster/bin/python install /wheels/*.whl

FROM build AS build-spark
RUN pip --python /opt/kcluster/bin/python install "$(ls /wheels/*.whl)[spark]"

FROM python:3.11-slim AS spark
RUN apt-get update && apt-get install --yes --no-install-recommends default-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build-spark /opt/kcluster /opt/kcluster
ENV PATH=/opt/kcluster/bin:$PATH \
    PYTHONUNBUFFERED=1
# Runs as root, because it writes to a mounted directory, and Spark does not start for a user without a name.
WORKDIR /work
ENTRYPOINT ["kcluster", "pipeline"]
CMD ["--help"]

# A build without --target makes this last stage.
FROM python:3.11-slim
RUN useradd --system --uid 10001 --user-group --create-home --home-dir /var/lib/kcluster kcluster \
 && mkdir -p /etc/kcluster
COPY --from=build /opt/kcluster /opt/kcluster
# The teaching topology, listening on all addresses of the container and advertised as localhost.
COPY topology.yaml /src/topology.yaml
RUN sed -e 's/^host: 127\.0\.0\.1.*/host: 0.0.0.0/' \
        -e 's/{id: \([0-9]*\), port: \([0-9]*\)/&, advertised: "localhost:\2"/' \
        /src/topology.yaml > /etc/kcluster/topology.yaml \
 && rm -r /src
ENV PATH=/opt/kcluster/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_RUNTIME_DIR=/var/lib/kcluster
USER kcluster
WORKDIR /var/lib/kcluster
EXPOSE 9092-9094
STOPSIGNAL SIGINT
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
  CMD ["kcluster", "status", "--json"]
ENTRYPOINT ["kcluster"]
CMD ["up", "/etc/kcluster/topology.yaml"]
