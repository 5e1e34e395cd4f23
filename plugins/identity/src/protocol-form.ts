import type { IncomingMessage } from 'node:http';

/** As much as the protocol core reads. */
const LIMIT = 56 * 1_024;

/** A form that is refused before the protocol core sees it. */
export class FormRefused extends Error {
  readonly status: number;

  constructor(status: number, description: string) {
    super(description);
    this.status = status;
  }
}

/**
 * The same request with its form read and looked through. The core takes U+0000 for a character like any other, and the database takes it
 * for an error (F-19). Requests without a form are as they were.
 */
export async function formChecked(req: IncomingMessage): Promise<IncomingMessage> {
  if (req.method !== 'POST' || !/^application\/x-www-form-urlencoded\s*(;|$)/i.test(req.headers['content-type'] ?? '')) return req;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LIMIT) throw new FormRefused(413, `at most ${LIMIT} bytes`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  if (/%00|\0/.test(body.toString('latin1'))) throw new FormRefused(400, 'U+0000 is no character of a parameter');
  // What is read cannot be read again; the core asks for its parts in this way and no other.
  return Object.create(req, {
    readable: { value: true },
    iterator: {
      value: async function* () {
        yield body;
      },
    },
  }) as IncomingMessage;
}
