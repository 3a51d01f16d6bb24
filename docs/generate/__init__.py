"""Parts of the documentation that are made from the code when the site is built.

A page has a line `<!-- generated: NAME -->` where such a part belongs; `hooks.py` puts it there.
"""
