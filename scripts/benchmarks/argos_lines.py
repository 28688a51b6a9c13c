"""Translate by Argos Translate, for which it needs a Python environment of its own: lists of lines in JSON in and out.

usage: PYTHON argos_lines.py PACKAGE FROM TO
"""

import json
import sys

from argostranslate import package, translate

package.install_from_path(sys.argv[1])
translation = translate.get_translation_from_codes(*sys.argv[2:])
for request in sys.stdin:
    print(json.dumps([translation.translate(line) for line in json.loads(request)]), flush=True)
