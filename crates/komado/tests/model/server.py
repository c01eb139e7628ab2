"""A real model behind a real llama.cpp server: server.py MODEL.gguf N_CTX.

Prints its URL on one line when it takes requests. Ends when standard input does, so that it never outlives whoever
started it.
"""

import os
import sys

import xllamacpp


def main():
    model, n_ctx = sys.argv[1], int(sys.argv[2])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = n_ctx
    params.n_parallel = 1
    # More threads than free cores make it several times slower, not faster.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.ctx_shift = False
    params.warmup = False
    params.endpoint_props = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # The server has threads of its own that do not end with this one.
    os._exit(0)


main()
