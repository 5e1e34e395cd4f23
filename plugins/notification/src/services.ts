import { Adapters } from './adapters/adapters.ts';
import type { Ctx } from './context.ts';
import { DeadLetters } from './delivery/dead-letters.ts';
import { Dispatcher } from './delivery/dispatcher.ts';
import { Mailbox } from './delivery/mailbox.ts';
import { Upkeep } from './delivery/upkeep.ts';
import { GatewayTests } from './gateways/gateway-tests.ts';
import { ChosenGateways } from './gateways/chosen-gateways.ts';
import { Gateways } from './gateways/gateways.ts';
import { PersonalInbox } from './messages/personal-inbox.ts';
import { Intake } from './messages/intake.ts';
import { MessageLog } from './messages/message-log.ts';
import { ViewRelay } from './messages/view-relay.ts';
import { Devices } from './people/devices.ts';
import { Preferences } from './people/preferences.ts';
import { Suppressions } from './people/suppressions.ts';
import { Tenants } from './people/tenants.ts';
import { Unsubscribe } from './people/unsubscribe.ts';
import { BroughtTemplates } from './templates/brought-templates.ts';
import { MessageWords } from './templates/message-words.ts';
import { Templates } from './templates/templates.ts';

/** Everything the service is made of, each part with what it needs. */
export function servicesOf(ctx: Ctx) {
  const tenants = new Tenants(ctx);
  const brought = new BroughtTemplates(ctx);
  const words = new MessageWords(ctx, brought);
  const preferences = new Preferences(ctx);
  const suppressions = new Suppressions(ctx);
  const unsubscribe = new Unsubscribe(ctx, preferences);
  const mailbox = new Mailbox(ctx);
  const adapters = new Adapters(ctx);
  const chosen = new ChosenGateways(ctx, tenants);
  const gateways = new Gateways(ctx, { tenants, chosen });
  const tests = new GatewayTests(ctx, { gateways, adapters, tenants });
  return {
    tenants,
    preferences,
    suppressions,
    unsubscribe,
    mailbox,
    adapters,
    gateways,
    tests,
    intake: new Intake(ctx),
    inbox: new PersonalInbox(ctx),
    log: new MessageLog(ctx, words),
    relay: new ViewRelay(ctx, { words, tenants, preferences }),
    dispatcher: new Dispatcher(ctx, { words, tenants, adapters, chosen, devices: new Devices(ctx), mailbox, suppressions, unsubscribe }),
    deadLetters: new DeadLetters(ctx),
    upkeep: new Upkeep(ctx),
    templates: new Templates(ctx, { words, brought, tenants, tests, mailbox, chosen }),
  };
}
