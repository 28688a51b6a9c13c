"""An HTTP server for translation models; the only package that imports the web framework (extra `serve`)."""
