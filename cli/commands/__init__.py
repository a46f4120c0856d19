"""One module a command, each with an `app`. `cli.main` names them and imports only the one that runs."""
