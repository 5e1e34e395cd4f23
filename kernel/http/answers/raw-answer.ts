import type { Outgoing } from '../operation-call.ts';

/** A refusal of a raw door: it is answered and not kept. */
class Refused extends Error {
  readonly response: Response;

  constructor(response: Response) {
    super(`refused with ${response.status}`);
    this.response = response;
  }
}

/** Has `once` keep what a raw door answers, as text, and makes the answer of it again. */
export async function onceAnswered(
  work: () => Promise<Response>,
  once: (run: () => Promise<Outgoing>) => Promise<Outgoing>,
): Promise<Response> {
  try {
    const { status, headers, value } = await once(async () => {
      const response = await work();
      if (!response.ok) throw new Refused(response);
      return { status: response.status, headers: Object.fromEntries(response.headers), value: await response.text() };
    });
    return new Response(value === undefined || value === '' ? null : (value as string), { status, headers });
  } catch (error) {
    if (error instanceof Refused) return error.response;
    throw error;
  }
}
