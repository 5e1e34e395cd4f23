import type { ReactNode } from 'react';
import type { Env } from '../../api/registry-api.ts';
import { Absent, Loading } from '../../widgets/page/page-state.tsx';
import { useConsole } from '../console-context.ts';
import { fetchEnv } from './gates.ts';
import { useLoaded } from '../loading/use-loaded.ts';

/** G2: an environment that is not there blocks; everything unclear renders, and the services decide. */
export function EnvGate({ env, children }: { env: string; children(env: Env | undefined): ReactNode }) {
  const { registry, bootstrap } = useConsole();
  const answer = useLoaded(`env ${env}`, signal => fetchEnv(() => registry.read<Env>({ kind: 'env', id: env }, signal)));
  if (!answer.data) return <Loading />;
  if (answer.data.kind === 'absent') return <Absent what="This environment" />;
  if (answer.data.kind !== 'found') return children(undefined);
  // What was read when the environment was entered may be older than what the navigation has heard since.
  const [read, heard] = [answer.data.env, bootstrap?.orgs.flatMap(({ envs }) => envs).find(({ env_id }) => env_id === env)];
  return children(heard && heard.updated_at > read.updated_at ? heard : read);
}
