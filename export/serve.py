"""Serves exported models on this machine by TensorFlow Serving's REST API and, with --ui, a page.

It prints its address once it is ready, and runs until Ctrl-C or SIGTERM.
"""

import gc

from absl import flags

from tf_smoothclir.command_line import command, setting_flags, shipping_flags

_OURS = {"module_name": command.COMMAND}
_EXPORT_DIR, _INDEX_DIR, _VERSION = setting_flags.define_index_flags()
_HOST = flags.DEFINE_string("host", "127.0.0.1", "Address to listen on; 0.0.0.0: all.", **_OURS)
_PORT = flags.DEFINE_integer("port", 8501, "Port; 0: any free one.", 0, 65535, **_OURS)
_ALLOWED_HOSTS_HELP = (
    "Names with a dot by which clients call the server, besides the machine's own. Any other Host"
    " header with a name is refused: a web page of another domain may be asking."
)
_ALLOWED_HOSTS = flags.DEFINE_list("allowed_hosts", [], _ALLOWED_HOSTS_HELP, **_OURS)
_UI = flags.DEFINE_boolean("ui", False, "Serve a web page that searches --index_dir.", **_OURS)
shipping_flags.define_engine_flags(searches=True)
_RETRIEVER = setting_flags.define_retriever()
setting_flags.define_settings(["data"])


def main(_argv) -> None:
    """Serves the models."""
    setting_flags.check_export_dir(searched=True)
    from tf_smoothclir.server.http_server import bound_socket, serve

    listening = bound_socket(_HOST.value, _PORT.value)
    import tensorflow as tf

    from tf_smoothclir.search.opening import open_search
    from tf_smoothclir.server.application import application
    from tf_smoothclir.server.search_page import open_page
    from tf_smoothclir.server.served_models import load_models

    def opened(retriever: str):
        places = _EXPORT_DIR.value, _INDEX_DIR.value, setting_flags.data_like
        chosen = {"version": _VERSION.value, **shipping_flags.where_to_search()}
        return open_search(*places, retriever=retriever, **chosen)

    tf.config.threading.set_intra_op_parallelism_threads(1)  # others wait less on a busy machine
    models = load_models(_EXPORT_DIR.value, _VERSION.value, may_be_none=_UI.value)
    page = open_page(opened(_RETRIEVER.value), opened) if _UI.value else None
    gc.freeze()  # what is loaded stays: looking through it for garbage would make requests wait
    serve(application(models, page, _ALLOWED_HOSTS.value), listening)


def run() -> None:
    """Entry point of `smoothclir-serve`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
