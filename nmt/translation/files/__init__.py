"""Files with markup: each format divides a file into segments to translate, and all else that stays."""
