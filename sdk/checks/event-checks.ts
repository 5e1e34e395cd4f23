import type { Manifest } from '@platform/sdk';
import { brokenSubscriptions } from './event-promises.ts';
import type { AddFinding } from './finding.ts';

const EVENT = /^[a-z0-9_-]{1,64}(:[a-z0-9_-]{1,64}){3}$/;

/** Names of the events that a service makes, and whether those who hear them still can (E011 to E014, E071). */
export function checkEvents(manifest: Manifest, known: ReadonlyMap<string, Manifest>, add: AddFinding): void {
  for (const name of Object.keys(manifest.events)) checkName(manifest, name, add);
  for (const { consumer, subscription, event, why } of brokenSubscriptions(manifest, known)) {
    add(
      'E071',
      consumer === manifest.id ? `consumes.${subscription}` : `events.${event}`,
      `${consumer} hears '${event}' in ${subscription}: ${why}.`,
      'Keep the promise and add beside it, or publish the new shape under a new event name (G-K-20).',
    );
  }
}

function checkName(manifest: Manifest, name: string, add: AddFinding): void {
  const waived = manifest.waivers[name] !== undefined;
  const [vertical, service, , operation] = name.split(':');
  if (!EVENT.test(name) && !waived)
    add(
      'E011',
      `events.${name}`,
      'The name is not vertical:service:resource:operation.',
      'Use four segments of a-z, 0-9, _ and -, or waive it in `waivers` with the decision that allows it.',
    );
  if (vertical !== manifest.vertical)
    add(
      'E012',
      `events.${name}`,
      `The event belongs to '${vertical}', the plugin to '${manifest.vertical}'.`,
      `Start the name with '${manifest.vertical}:'.`,
    );
  else if (!waived && service !== manifest.id)
    add(
      'E013',
      `events.${name}`,
      `The second segment is '${service}', the service is '${manifest.id}'.`,
      `Use '${manifest.vertical}:${manifest.id}:…'.`,
    );
  if (/^v\d+$/.test(operation ?? '') || name.split(':').some(segment => /^v\d+$/.test(segment)))
    add('E014', `events.${name}`, 'Event names carry no version.', 'Add members to the payload, or make a new event name.');
}
