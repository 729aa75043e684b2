"""One module per command of `python -m engine`; its name is the command's, `cli.NAME` in `assets/words` its help.

Each has `add_arguments(parser)` and `run(options) -> exit status`; `options.lang` is there for every command.
"""
