"""The mathematics of QoS in an OSD: reservations, delivered work, reservation lag.

Pure functions over parsed replies. Nothing here knows of sockets, scrapes or metric families.
"""
