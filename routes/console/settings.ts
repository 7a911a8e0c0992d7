import type { FastifyInstance } from 'fastify'
import { settingsPage } from '../../lib/pages/console/settings.ts'
import type { Setting } from '../../schemas/status.ts'
import type { AddPage } from './page.ts'

/** The settings that count, and the test email. */
export function settingPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/settings',
    section: 'settings',
    needs: 'listSettings',
    commands: () => ['config check', 'mail test ADDRESS'],
    async show (desk) {
      const { data: { settings } } = await desk.call<{ settings: Setting[] }>({ path: '/settings' })
      return (view, context) => settingsPage(view, { settings, mayMail: desk.may('sendTestMail') }, context)
    },
    forms: {
      mail: {
        needs: 'sendTestMail',
        async submit (desk) {
          await desk.call({ method: 'POST', path: '/mail/test' })
          return { done: 'mail-sent' }
        }
      }
    }
  })
}
