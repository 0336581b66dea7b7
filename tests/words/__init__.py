"""How our pages and texts read: the words of the glossary, and the length of sentences.

`python -m tests.words` prints a row per page and fails above the bars of bars.py, or where a text
uses a word that docs/start/glossary.md or docs/internals/writing.md replaces.
"""
