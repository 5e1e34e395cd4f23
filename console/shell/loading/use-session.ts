import { useCallback, useEffect, useState } from 'react';
import type { GatewayClient } from '../../api/gateway/gateway-client.ts';
import { Problem } from '../../api/gateway/problem.ts';
import type { Session } from '../../api/gateway/session.ts';

/** G0: the session of this browser, or why there is none; `undefined` while it is asked for. */
export type SessionState = Session | 'absent' | Problem | undefined;

export function useSession(client: GatewayClient) {
  const [session, setSession] = useState<SessionState>();
  const open = useCallback(async () => {
    setSession(undefined);
    try {
      setSession(await client.session());
    } catch (error) {
      const problem = Problem.of(error);
      setSession(problem.status === 401 ? 'absent' : problem);
    }
  }, [client]);
  useEffect(() => void open(), [open]);
  return { session, open };
}

export const signedIn = (session: SessionState): session is Session =>
  session !== undefined && session !== 'absent' && !(session instanceof Problem);
