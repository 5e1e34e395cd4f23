import { useEffect, useState } from 'react';
import type { Bootstrap, RegistryApi } from '../../api/registry-api.ts';
import type { Place } from '../navigation/place.ts';

/** The feature map of the environment the operator stands in. An answer that does not come disables nothing. */
export function useFeatures(registry: RegistryApi, bootstrap: Bootstrap | undefined, place: Place, home: string | null) {
  const [own, setOwn] = useState<{ env: string; features: Readonly<Record<string, boolean>> }>();
  const env = place.env;
  const version = bootstrap?.feature_version;

  useEffect(() => {
    if (!env || !bootstrap || env === home) return;
    const aborted = new AbortController();
    registry.bootstrap({ env }, aborted.signal).then(
      ({ features }) => setOwn({ env, features }),
      () => undefined,
    );
    return () => aborted.abort();
  }, [registry, env, home, bootstrap, version]);

  if (!env || env === home) return bootstrap?.features ?? {};
  return own?.env === env ? own.features : {};
}
