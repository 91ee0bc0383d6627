# Ostler in a container; docs/container.md says how it is used.
#
#     docker build -t ostler .
#     docker build -t ostler:cuda --build-arg OSTLER_CUDA=1 .      # with CUDA's libraries, 3 GB more
#     docker run --rm -v "$PWD/runs:/work/runs" --user "$(id -u):$(id -g)" ostler train cartpole

# Debian with Rust, and the same Debian without.
ARG BUILD_IMAGE=rust:1.95-slim-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
# 1: CUDA's libraries, too.
ARG OSTLER_CUDA=0
# The paths of a program that leaves its machine (trainer/learn/build.rs): bin/ostler, libtorch/lib.
ENV OSTLER_DIST=1 OSTLER_CACHE=/var/cache/ostler
RUN --mount=type=cache,target=/var/cache/ostler \
    --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    OSTLER_CUDA=${OSTLER_CUDA} cargo run --locked --bin train -- --fetch-only \
    && cargo build --locked --release --bin ostler \
    && mkdir -p /image/bin /image/libtorch/lib \
    && cp target/release/ostler /image/bin/ \
    && cp -r configs README.md LICENSE-MIT LICENSE-APACHE /image/ \
    && cp -r "$(realpath .libtorch/torch)/../nvidia" /image/nvidia \
    && cp .libtorch/torch/lib/*.so* /image/libtorch/lib/ \
    && rm -f /image/libtorch/lib/libtorch_python.so \
    && if [ "${OSTLER_CUDA}" != 1 ]; then rm -f /image/libtorch/lib/*cuda* /image/libtorch/lib/*nvshmem*; fi \
    && find /image/nvidia -name include -prune -exec rm -r {} +

FROM ${BASE_IMAGE}
# The compiler makes a robot's own kernel for the processor at hand; without it the generic one runs.
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 ostler \
    && install -d -m 1777 /work
COPY --from=build /image /opt/ostler
# Any user may train: the folder of runs and of kernels is made by who needs it.
ENV PATH=/opt/ostler/bin:$PATH \
    OSTLER_CACHE=/work/.cache \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER ostler
WORKDIR /work
ENTRYPOINT ["ostler"]
CMD ["--help"]
