"""An HTTP server for translation models; the only package that knows the web framework (extra `serve`)."""
