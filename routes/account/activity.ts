import type { FastifyInstance } from 'fastify'
import { showOwnEvents } from '../../lib/events/own.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { sendPage } from '../../plugins/pages.ts'

/** The events of the person's account. */
export function activityPages (app: FastifyInstance, { look }: AccountMount, visits: Visits): void {
  const { events, store } = app.identity

  app.get('/activity', { schema: { hide: true } }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'activity' })
    if (visit === null) return reply
    const { view, user: { user_id } } = visit
    const [own, ofClients] = await Promise.all([events.listOwn(user_id), events.listOfClients(user_id)])
    const lists = { events: await showOwnEvents(store, own), clientEvents: await showOwnEvents(store, ofClients) }
    return await sendPage(reply, 'account-activity', { ...view, ...lists }, { look })
  })
}
