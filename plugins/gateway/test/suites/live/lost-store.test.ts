import { eventually, loseKeyValue } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import type { World } from '../../fixtures/world.ts';

/** What becomes of a gateway whose key-value store dies. */
export function describeLostStore(given: () => World): void {
  describe('a store that dies', () => {
    test('is 503 until another comes in its place, where people sign in and the end of a session is heard', async () => {
      const world = given();
      const { headers } = await world.signIn();
      const answers = new Set<string>();
      let away = true;
      const lost = loseKeyValue(world.stores).finally(() => (away = false));
      while (away) {
        const answer = await world.ask('GET', '/auth/session', { headers });
        answers.add(`${answer.status} ${((await answer.json()) as { code?: string }).code ?? ''}`.trim());
      }
      await lost;
      expect(answers).toContain('503 not_ready');
      // A session that was written down in time is there, another is not, and nobody is told anything else.
      expect([...answers].filter(each => !['200', '401 session_required', '503 not_ready'].includes(each))).toEqual([]);
      const announced = () =>
        world.announce().then(
          () => true,
          () => false,
        );
      await eventually(announced).toBe(true);
      const status = async () => (await world.ask('GET', '/auth/session', { headers })).status;
      await eventually(status).not.toBe(503);
      const browser = await world.signIn();
      expect((await world.ask('GET', '/proxy/sys/v1/o', { headers: browser.headers })).status).toBe(200);
      const page = await world.listen(browser);
      expect((await world.ask('POST', '/auth/sign-out', { headers: browser.headers })).status).toBe(204);
      await eventually(() => page.closedWith).toBe(4401);
    });
  });
}
