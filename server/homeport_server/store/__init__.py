"""What the server remembers: machines, their identities, and which address is whose. SQLAlchemy Core on SQLite.

The statements are portable to PostgreSQL; that no address is ever given twice is a constraint of the database.
"""
