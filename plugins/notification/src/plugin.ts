import { gateway } from '@platform/gateway/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin, type TaskRun } from '@platform/sdk';
import { notification } from '../contract/index.ts';
import { servicesOf } from './services.ts';

export default definePlugin(notification, {
  uses: { gateway, registry },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const of = servicesOf(ctx);
    const deliver = (payload: { delivery_id: string }, run: TaskRun) => of.dispatcher.run(payload, run);
    return {
      routes: {
        send: request => of.intake.send(request),
        listMessages: request => of.inbox.list(request),
        unreadCount: request => of.inbox.count(request),
        readAll: request => of.inbox.readAll(request),
        getMessage: request => of.inbox.get(request),
        messageContent: request => of.inbox.content(request),
        readMessage: request => of.inbox.read(request),
        searchMessages: request => of.log.search(request),
        explainMessage: request => of.log.explain(request),
        messageDeliveries: request => of.log.deliveries(request),
        unsubscribe: exchange => of.unsubscribe.answer(exchange),
        listGateways: request => of.gateways.list(request),
        createGateway: request => of.gateways.create(request),
        testGateway: request => of.tests.test(request),
        getGateway: request => of.gateways.get(request),
        updateGateway: request => of.gateways.update(request),
        deleteGateway: request => of.gateways.remove(request),
        tryGateway: request => of.tests.one(request),
        listTemplates: request => of.templates.list(request),
        putTemplate: request => of.templates.put(request),
        addTemplate: request => of.templates.add(request),
        deleteTemplate: request => of.templates.remove(request),
        dropTemplate: request => of.templates.drop(request),
        previewTemplate: request => of.templates.preview(request),
        showTemplate: request => of.templates.show(request),
        sendTemplate: request => of.templates.sendTest(request),
        getPreferences: request => of.preferences.get(request),
        putPreferences: request => of.preferences.put(request),
        listDeadLetters: request => of.deadLetters.list(request),
        replayDeadLetter: request => of.deadLetters.replay(request),
        replayMatching: request => of.deadLetters.replayMatching(request),
        listSuppressions: request => of.suppressions.list(request),
        addSuppression: request => of.suppressions.add(request),
        deleteSuppression: request => of.suppressions.remove(request),
        reportBounce: request => of.suppressions.bounced(request),
        listMailbox: request => of.mailbox.list(request),
        getMail: request => of.mailbox.get(request),
        deleteMail: request => of.mailbox.remove(request),
      },
      on: {
        accountGone: ({ payload }) => of.upkeep.forgetPerson(String(payload['user_id'])),
      },
      tasks: { email: deliver, sms: deliver, push: deliver, web_push: deliver, mail: deliver },
      jobs: {
        relay: async signal => {
          of.adapters.sweep();
          await of.relay.look(signal);
        },
        resume: signal => of.upkeep.resume(signal),
        sealAnew: signal => of.upkeep.sealAnew(signal),
        forget: signal => of.upkeep.forget(signal),
      },
      ready: async () => {
        ctx.own(await of.relay.listen());
        // What was handed over while nobody ran is delivered now (NTF-013).
        void of.relay.look();
        if (of.mailbox.open) ctx.log.info({}, 'mails of environments without a gateway are kept on the page Mailbox: this is development');
      },
    };
  },
});
