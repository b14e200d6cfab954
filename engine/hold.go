package engine

import (
	"context"
	"encoding/binary"
)

// heldRows are the rows of a cursor WITH HOLD after its transaction: DataRow messages back to back.
type heldRows struct {
	chunks [][]byte
}

// hold reads the rest of a cursor, so that it outlives its transaction.
func (s *session) holdCursor(ctx context.Context, c *cursor) error {
	p := c.portal
	if p.done {
		c.tx = nil
		return nil
	}
	if p.src == nil {
		src, err := p.open(ctx, discardWriter{})
		if err != nil {
			return err
		}
		p.src = src
	}
	h := &heldRows{}
	for {
		out, n, done, err := p.src.appendRows(ctx, nil, 0)
		if err != nil {
			return err
		}
		if n > 0 {
			h.chunks = append(h.chunks, out)
		}
		if done {
			break
		}
	}
	p.src.close()
	p.src = h
	c.tx = nil
	return nil
}

func (h *heldRows) appendRows(_ context.Context, dst []byte, limit int) ([]byte, int, bool, error) {
	n := 0
	for len(h.chunks) > 0 && (limit == 0 || n < limit) {
		c := h.chunks[0]
		for len(c) > 0 && (limit == 0 || n < limit) {
			size := 1 + int(binary.BigEndian.Uint32(c[1:]))
			dst = append(dst, c[:size]...)
			c = c[size:]
			n++
		}
		if len(c) == 0 {
			h.chunks = h.chunks[1:]
		} else {
			h.chunks[0] = c
		}
		if limit == 0 {
			break
		}
	}
	return dst, n, len(h.chunks) == 0, nil
}

func (h *heldRows) close() { h.chunks = nil }
