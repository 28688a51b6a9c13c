"""Configuration: YAML files become frozen, typed sections; faults are reported with their places.

The only package that uses YAML. `sections` has the whole config; the sections in it have a module each, such as
`data_sections`, and are made of `fields`. `tree` has the values of a file with their lines, `reading` turns files and
`--set` into a `Config`, `messages` and `combinations` report wrong values and wrong combinations, `parent` takes over
settings of a trained model, `attention_scores` names the scores, `attention_checks` checks a choice of attention,
`comparison` reads comparison files, and `description` documents the keys for people and editors.
"""

from nmt.config.amount_of_text import automatic_keys as automatic_keys
from nmt.config.amount_of_text import choose_by_amount as choose_by_amount
from nmt.config.amount_of_text import choose_split as choose_split
from nmt.config.amount_of_text import resolve_auto as resolve_auto
from nmt.config.amount_of_text import value_at as value_at
from nmt.config.attention_scores import names_class as names_class
from nmt.config.attention_sections import *  # noqa: F403
from nmt.config.data_sections import *  # noqa: F403
from nmt.config.decode_sections import *  # noqa: F403
from nmt.config.fields import *  # noqa: F403
from nmt.config.model_sections import *  # noqa: F403
from nmt.config.reading import Overrides as Overrides
from nmt.config.reading import as_settings as as_settings
from nmt.config.reading import as_values as as_values
from nmt.config.reading import check_values as check_values
from nmt.config.reading import dump_config as dump_config
from nmt.config.reading import load_config as load_config
from nmt.config.reading import overridden as overridden
from nmt.config.reading import parse_config as parse_config
from nmt.config.reading import read_config as read_config
from nmt.config.reading import show_config as show_config
from nmt.config.reading import with_search_options as with_search_options
from nmt.config.sections import *  # noqa: F403
from nmt.config.text_sections import *  # noqa: F403
from nmt.config.train_sections import *  # noqa: F403
