// Package catalog answers "which metadata does this name mean, at which commit, and what changed since?".
package catalog
