"""The mathematics of QoS in an OSD: what was promised, what was delivered, how far behind it is.

Pure functions over parsed replies. Nothing here knows of sockets, scrapes or metric families.
"""
