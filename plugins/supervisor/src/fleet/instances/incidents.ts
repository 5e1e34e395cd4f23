import type { Logger, ProcessHost } from '@platform/sdk';
import type { LifeEffect } from '../../life/instance-life.ts';
import type { AlertBook } from '../alert-book.ts';
import type { Instance } from './instance.ts';

interface Parts {
  readonly alerts: AlertBook;
  readonly log: Logger;
  readonly machine: ProcessHost;
  readonly newId: () => string;
  readonly now: () => Date;
  /** How often the instance was started again. */
  readonly restartsOf: (instance: Instance) => number;
}

/**
 * What goes wrong with instances: said in the log, kept as a post-mortem, and raised as an alert when a service is given up (SUP-027 to
 * 032).
 */
export class Incidents {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A process ended, or could not begin. An absent store is nobody's fault and leaves no post-mortem. */
  down(instance: Instance, { reason, absent, again_ms }: Extract<LifeEffect, { do: 'down' }>): void {
    const { log, restartsOf } = this.#parts;
    const fields = { service_type: instance.service, reason, restarts: restartsOf(instance), again_ms };
    if (absent) return log.warn(fields, 'service process waits for a store');
    log.error(fields, 'service process is down');
    if (/EADDRINUSE|cannot be opened/.test(reason))
      log.error({ alert: 'captain.service.bind_failed', ...fields, port: instance.port }, 'a service could not have its port');
    this.#keep(instance, reason);
  }

  givenUp({ service }: Instance, { reason, restarts }: Extract<LifeEffect, { do: 'raise' }>): void {
    const { alerts, log, machine, now } = this.#parts;
    log.error(
      { alert: 'captain.service.failed', service_type: service, restarts, reason },
      'service process was given up; last-resort attempts go on',
    );
    void alerts.raise({ service_type: service, restarts, reason, log_path: machine.logPath(service), at: now().toISOString() });
  }

  over({ service }: Instance): void {
    this.#parts.log.info({ service_type: service }, 'service process is back; its alert is over');
    void this.#parts.alerts.clear(service);
  }

  lostInUpgrade({ service }: Instance, reason: string): void {
    this.#parts.log.error({ service_type: service, reason }, 'an instance of a running upgrade is down');
  }

  #keep(instance: Instance, reason: string): void {
    const { alerts, machine, newId, now, restartsOf } = this.#parts;
    const { service, build, looks } = instance;
    void alerts.keep({
      post_mortem_id: newId(),
      service_type: service,
      restarts: restartsOf(instance),
      reason,
      log_path: machine.logPath(service),
      at: now().toISOString(),
      ip: machine.ip,
      pid: instance.process?.pid ?? null,
      build,
      looks: [...looks],
    });
  }
}
