# rammerc with CUDA's compiler:
#
#   docker build -t rammerc .
#   docker run --gpus all -v "$PWD:/work" rammerc compile model.onnx -o out
#
# Without --gpus it compiles for GPUs that are not there (--target sm_90), and runs libraries on the emulator.
ARG GO=1.26
ARG CUDA=13.0.1
FROM golang:${GO} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /rammerc ./cmd/rammerc

FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04
COPY --from=build /rammerc /usr/local/bin/rammerc
WORKDIR /work
ENTRYPOINT ["rammerc"]
