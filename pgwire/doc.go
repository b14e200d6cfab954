// Package pgwire is the PostgreSQL wire protocol server.
package pgwire
