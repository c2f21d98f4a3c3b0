"""Serves exported models on this machine, for development: TensorFlow Serving's gRPC and REST APIs.

It loads SavedModels, follows new versions and answers requests as TensorFlow Serving does, so that
clients can be written and tried out without it. For production, use TensorFlow Serving. With --ui,
it also serves a search page at the REST address. It prints its addresses once it is ready, and runs
until Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

from absl import flags

from tf_smoothclir.command_line import command, engine_flags, setting_flags

_SIGNAL_SECONDS = 0.5  # between looks whether a signal has come

_EXPORT_DIR = flags.DEFINE_string(
    "export_dir",
    "runs/train",
    "Where smoothclir-export wrote the models. The latest version of each is served.",
    module_name=command.COMMAND,
)
_CONFIG = flags.DEFINE_string(
    "model_config_file",
    "",
    "Model config file of TensorFlow Serving: which models, versions and labels to serve. It is"
    " read again with each look for new versions. With --export_dir, the last component of each"
    " base path is looked up there.",
    module_name=command.COMMAND,
)
_HOST = flags.DEFINE_string(
    "host",
    "127.0.0.1",
    "Address to listen on. 0.0.0.0 lets any machine in, without authentication.",
    module_name=command.COMMAND,
)
_PORT = flags.DEFINE_integer(
    "port",
    8500,
    "Port of gRPC; 0: any free one.",
    lower_bound=0,
    upper_bound=65535,
    module_name=command.COMMAND,
)
_REST_API_PORT = flags.DEFINE_integer(
    "rest_api_port",
    8501,
    "Port of REST and the page; 0: any free one.",
    lower_bound=0,
    upper_bound=65535,
    module_name=command.COMMAND,
)
_POLL_SECONDS = flags.DEFINE_float(
    "file_system_poll_wait_seconds",
    1.0,
    "Seconds between looks for new versions.",
    lower_bound=0.01,
    module_name=command.COMMAND,
)
_MAX_MEGABYTES = flags.DEFINE_integer(
    "max_request_megabytes",
    64,
    "Largest request, in MB.",
    lower_bound=1,
    module_name=command.COMMAND,
)
_THREADS = flags.DEFINE_integer(
    "threads",
    1,
    "Threads that TensorFlow may use for one operation. More threads make a single request faster"
    " on an idle machine, and the slowest requests slower on a busy one.",
    lower_bound=1,
    module_name=command.COMMAND,
)
_ALLOWED_HOSTS = flags.DEFINE_list(
    "allowed_hosts",
    [],
    "Names with a dot by which clients may call REST and the page, such as search.example.org,"
    " besides the name of this machine. Addresses and names without a dot always may. Any other"
    " Host header is refused: it may be a web page of another domain that asks this server.",
    module_name=command.COMMAND,
)
_UI = flags.DEFINE_boolean(
    "ui",
    False,
    "Serve a web page to search with, at the REST address.",
    module_name=command.COMMAND,
)
_INDEX_DIR = flags.DEFINE_string(
    "index_dir",
    "",
    "The index that --ui searches. Empty: index/ in --export_dir.",
    module_name=command.COMMAND,
)
engine_flags.define_engine_flags(searches=True)
_RETRIEVER = setting_flags.define_retriever()
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Serves the models."""
    del argv
    if not _CONFIG.value:
        setting_flags.check_export_dir()
    from tf_smoothclir.server.ports import check_ports

    check_ports(_HOST.value, {"--rest_api_port": _REST_API_PORT.value, "--port": _PORT.value})
    import tensorflow as tf

    from tf_smoothclir.server.development_server import DevelopmentServer
    from tf_smoothclir.server.model_config import configs_of_export, configs_of_file
    from tf_smoothclir.server.model_registry import ModelRegistry

    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    export_dir = _EXPORT_DIR.value
    if _CONFIG.value:
        mapped = export_dir if flags.FLAGS["export_dir"].present else None
        models = ModelRegistry(lambda: configs_of_file(_CONFIG.value, mapped))
    else:
        models = ModelRegistry(lambda: configs_of_export(export_dir))
    routes = _page() if _UI.value else None  # until then, a signal ends the process at once
    gc.freeze()  # what is loaded stays: looking through it for garbage would make requests wait
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with DevelopmentServer(
        models,
        host=_HOST.value,
        port=_PORT.value,
        rest_api_port=_REST_API_PORT.value,
        max_bytes=_MAX_MEGABYTES.value << 20,
        poll_seconds=_POLL_SECONDS.value,
        routes=routes,
        names=_ALLOWED_HOSTS.value,
    ) as server:
        host = server.host
        print(f"grpc={host}:{server.port} rest=http://{host}:{server.rest_api_port}", flush=True)
        while not stopped.wait(_SIGNAL_SECONDS):  # a wait without an end may miss its signal
            pass
    # All is answered. Threads of gRPC may be about to end, and if Python's own end met them in the
    # middle of their C++, the process would abort.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _page():
    from tf_smoothclir.search.opening import open_search
    from tf_smoothclir.server.search_page import open_page

    def opened(retriever: str):
        return open_search(
            _EXPORT_DIR.value,
            _INDEX_DIR.value,
            setting_flags.data_like,
            engine=engine_flags.engine_address(),
            retriever=retriever,
        )

    return open_page(opened(_RETRIEVER.value), opened).routes()


def run() -> None:
    """Entry point of `smoothclir-serve`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
