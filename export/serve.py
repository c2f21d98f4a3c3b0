"""Serves exported models on this machine by TensorFlow Serving's REST API and, with --ui, a page.

It prints its address once it is ready, and runs until Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import gc

from absl import flags

from tf_smoothclir.command_line import command, engine_flags, setting_flags

_OURS = {"module_name": command.COMMAND}
_EXPORT_DIR, _INDEX_DIR = setting_flags.define_index_flags()
_VERSION = flags.DEFINE_integer("version", None, "Version; without it, the newest.", 1, **_OURS)
_HOST_HELP = "Address to listen on. 0.0.0.0 lets any machine in, without authentication."
_HOST = flags.DEFINE_string("host", "127.0.0.1", _HOST_HELP, **_OURS)
_PORT = flags.DEFINE_integer("port", 8501, "Port; 0: any free one.", 0, 65535, **_OURS)
_ALLOWED_HOSTS_HELP = (
    "Names with a dot by which clients may call the server, such as search.example.org, besides the"
    " name of this machine. Addresses and names without a dot always may. Any other Host header is"
    " refused: it may be a web page of another domain that asks this server."
)
_ALLOWED_HOSTS = flags.DEFINE_list("allowed_hosts", [], _ALLOWED_HOSTS_HELP, **_OURS)
_UI = flags.DEFINE_boolean("ui", False, "Serve a web page that searches --index_dir.", **_OURS)
engine_flags.define_engine_flags(searches=True)
_RETRIEVER = setting_flags.define_retriever()
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Serves the models."""
    del argv
    setting_flags.check_export_dir()
    from tf_smoothclir.server.http_server import bound_socket, serve

    listening = bound_socket(_HOST.value, _PORT.value)
    from tf_smoothclir.search.opening import open_search
    from tf_smoothclir.server.application import application
    from tf_smoothclir.server.search_page import open_page
    from tf_smoothclir.server.served_models import load_models

    def opened(retriever: str):
        engine, places = engine_flags.engine_address(), (_EXPORT_DIR.value, _INDEX_DIR.value)
        return open_search(*places, setting_flags.data_like, engine=engine, retriever=retriever)

    models = load_models(_EXPORT_DIR.value, _VERSION.value)
    page = open_page(opened(_RETRIEVER.value), opened) if _UI.value else None
    gc.freeze()  # what is loaded stays: looking through it for garbage would make requests wait
    serve(application(models, page, _ALLOWED_HOSTS.value), listening)


def run() -> None:
    """Entry point of `smoothclir-serve`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
