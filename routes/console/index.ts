import type { FastifyInstance, FastifyReply } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import { type ConsoleMount, createConsoleVisits } from '../../plugins/console.ts'
import type { ConsoleDoor } from '../../plugins/console-door.ts'
import { answerRepeats } from '../../plugins/form-repeats.ts'
import { recordOrigins } from '../../plugins/origin.ts'
import { PageError, createPageError, sendPage } from '../../plugins/pages.ts'
import { parseForms } from '../../plugins/sign-in-forms.ts'
import { createConsoleLook } from '../../lib/pages/console/index.ts'
import { ApiError, createConsoleApi } from './api.ts'
import { clientPages } from './client.ts'
import { clientsPages } from './clients.ts'
import { eventPages } from './events.ts'
import { jobPages } from './jobs.ts'
import { findPages } from './find.ts'
import { overviewPages } from './overview.ts'
import { createConsolePages } from './page.ts'
import { peoplePages } from './people.ts'
import { personPages } from './person.ts'
import { previewPages } from './preview.ts'
import { settingPages } from './settings.ts'
import { zonePages } from './zone.ts'

/** Bytes of a form, percent-encoded: as much as a body of the API may have. */
const FORM_LIMIT = 192 * 1024

interface ConsoleParts {
  mount: ConsoleMount
  door: ConsoleDoor
  /** Registers the routes of the API, for the calls that the pages make of it. */
  registerApi: Parameters<typeof createConsoleApi>[2]
}

const notFound = () => new IdentityError('ErrNotFound', 'path: no such page')

/** The console of administrators and support staff: pages without a script, over the API. */
export async function consoleRoutes (app: FastifyInstance, { mount, door, registerApi }: ConsoleParts): Promise<void> {
  const { look, options, getConsole } = mount
  const handleError = createPageError(look)
  app.setErrorHandler(async (error, request, reply) => {
    if (error instanceof IdentityError && error.statusCode === 401) return await reply.redirect(getConsole(), 303)
    const isClosed = error instanceof IdentityError && !(error instanceof PageError) && error.code === 'ErrPerm'
    const shown = isClosed && !(error instanceof ApiError) ? new PageError('ErrPerm', error.message, ({ console: own }) => own.closed) : error
    return await handleError(shown, request, reply)
  })
  // No handler of unknown paths of its own: elsewhere the console is one of those of the host.
  app.addHook('onRequest', async (request, reply) => door.isNear(request.ip) ? undefined : reply.callNotFound())
  parseForms(app, FORM_LIMIT)
  answerRepeats(app, { ...mount, getAbove: getConsole })
  recordOrigins(app, () => 'console')
  const visits = createConsoleVisits(app, mount, door)
  const add = createConsolePages(app, { ...mount, consoleLook: createConsoleLook(look) }, visits, createConsoleApi(app, options, registerApi))
  overviewPages(app, add)
  findPages(app, add)
  peoplePages(app, add)
  settingPages(app, add)
  personPages(app, add)
  clientsPages(app, add)
  clientPages(app, add)
  previewPages(app, add)
  eventPages(app, add)
  jobPages(app, add)
  zonePages(app, add, mount)

  app.route({ method: ['GET', 'POST'], url: '/*', schema: { hide: true }, handler: () => { throw notFound() } })

  app.post('/sign-out', { schema: { hide: true } }, async (request, reply): Promise<FastifyReply> => {
    const visit = await visits.open(request, reply)
    if (visit === null) return reply
    await visits.signOut(request, reply, visit)
    return await sendPage(reply, 'signed-out', {}, { look })
  })
}
