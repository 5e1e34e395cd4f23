import type { Ctx } from '../context.ts';
import { isRefusal } from '../context.ts';
import type { InstanceRow } from '../instances/instance-row.ts';
import { usersGroup } from './access-names.ts';
import type { ProvisioningStep } from './provisioning-step.ts';

/** The registry's app instance: from it on, the hosts lead to the application (APP-006). */
export function hostStep({ services: { registry } }: Ctx): ProvisioningStep {
  /** The one that is there already, known by its client, which no other instance has. */
  const find = async ({ env_id, slug, client_id }: InstanceRow, signal: AbortSignal): Promise<string | undefined> => {
    for (let cursor: string | null = null; client_id !== null; ) {
      const page: Awaited<ReturnType<typeof registry.listApplications>> = await registry.listApplications({
        params: { env_id },
        query: { limit: 200, ...(cursor === null ? {} : { cursor }) },
        signal,
      });
      const found = page.items.find(app => app.slug === slug && app.oauth_client_id === client_id && app.status === 'active');
      if (found) return found.app_instance_id;
      cursor = page.next_cursor;
      if (cursor === null) return undefined;
    }
    return undefined;
  };
  return {
    name: 'app_instance',
    async do(instance, signal) {
      const { env_id, slug, name, app_slug, client_id, public_signup } = instance;
      try {
        const { app_instance_id } = await registry.createApplication({
          params: { env_id },
          body: {
            app_id: app_slug,
            slug,
            name,
            oauth_client_id: client_id,
            auth_mode: 'self_service',
            auth_group: usersGroup(instance),
            allow_signup: public_signup,
          },
          signal,
        });
        return { app_instance_id };
      } catch (cause) {
        const known = isRefusal(cause, 'slug_taken', 'oauth_client_taken', 'hostname_taken') ? await find(instance, signal) : undefined;
        if (known === undefined) throw cause;
        return { app_instance_id: known };
      }
    },
    async undo(instance, signal) {
      const app_instance_id = instance.app_instance_id ?? (await find(instance, signal));
      if (app_instance_id === undefined) return;
      try {
        await registry.deleteApplication({ params: { env_id: instance.env_id, app_instance_id }, signal });
      } catch (cause) {
        if (!isRefusal(cause, 'app_instance_not_found', 'env_not_found', 'record_archived')) throw cause;
      }
    },
  };
}
