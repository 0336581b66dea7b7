"""The account of waiting: where the time of an OSD's client operations goes, each second once.

`sums` is what an OSD counted, and `division` divides it by place; `samples` has what Ceph does not
count; `account` adds up. docs/internals/account.md has the formula of each share, and how far off
it was on real clusters.
"""
