"""What goes over the wire: little, numbered, and whole in the end. Field cases 46 and 47."""

from __future__ import annotations

START = """text = [f'tok{n:05d} ' for n in range(6000)] + ['END']
session = held.start([{'text': text, 'chunk_delay_s': 0.006}, 'Two.'])
panel = session.panel()
panel"""


def test_sixty_lost_messages(notebook):
    """Messages are lost in mid-stream; the page ends with exactly the kernel's text."""
    page = notebook([START, "session.schedule(session.send('go'));"])
    page.run(1)
    panel = page.show_panel(1)
    page.run(2)
    page.until(lambda: "tok00040" in panel.inner_text())

    def lose():
        page.js("window.__drop(8)")
        page.page.wait_for_timeout(500)
        return page.sockets()["dropped"] >= 60

    page.until(lose, "60 are lost", 90)
    page.js("window.__drop(0)")
    page.until(lambda: "Idle" in panel.inner_text(), "the run ends", 90)
    page.until(lambda: "END" in panel.inner_text())
    said = page.silently("print(session.state.last_answer)").strip()
    shown = panel.locator(".cnb-md").last.inner_text().strip()
    assert shown.split() == said.split()
    assert len(shown.split()) == 6001


def test_few_messages_for_many_deltas(notebook):
    """46: 5,000 deltas in a burst are a few messages; 47: bytes grow with the text, not with its square."""
    page = notebook([
        "text = [f'tok{n:05d} ' for n in range(5000)] + ['END']\n"
        "session = held.start([{'text': text}, 'Two.'])\n"
        "panel = session.panel()\npanel",
        "session.schedule(session.send('go'));"])  # fmt: skip
    page.run(1)
    panel = page.show_panel(1)
    before = page.sockets()
    page.run(2)
    page.until(lambda: "END" in panel.inner_text())
    after = page.sockets()
    assert after["n"] - before["n"] < 400
    assert after["rx"] - before["rx"] < 600_000


def test_idle_panels_send_nothing(notebook):
    """20 panels, one running: the other 19 cost no messages, counted where they arrive."""
    page = notebook([
        "sessions = [held.start(['Hello.'], session_id=f's{n}') for n in range(20)]\n"
        "panels = [session.panel() for session in sessions]\n"
        "from IPython.display import display\n"
        "display(*panels)"])  # fmt: skip
    page.run(1)
    page.until(lambda: page.output(1).locator(".cnb-bar").count() == 20, "all are drawn", 60)
    page.page.wait_for_timeout(2500)
    page.js("window.__comms = {}")
    page.silently("sessions[7].schedule(sessions[7].send('go'))")
    page.until(lambda: "Hello." in page.output(1).inner_text())
    page.page.wait_for_timeout(2500)
    running = page.silently("print(panels[7].model_id)").strip()
    assert list(page.js("window.__comms")) == [running]
