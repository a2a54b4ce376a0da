"""What happened, as words.

Owns: kinds of notes (kinds.py), lines and JSON of notes and requests (render.py), timelines
(timeline.py).  Never: decides, keeps or prints anything.
"""
