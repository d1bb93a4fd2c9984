(function () {
  "use strict";
  var form = document.getElementById("filter");
  if (!form) { return; }
  var text = document.getElementById("filter-text");
  var state = document.getElementById("filter-state");
  var told = document.getElementById("filter-told");
  var rows = Array.prototype.slice.call(document.querySelectorAll("[data-hosts]"));
  function update() {
    var words = text.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    var seen = 0, all = 0;
    rows.forEach(function (row) {
      var names = row.getAttribute("data-hosts").split(" ");
      var hits = names.filter(function (name) {
        return !words.length || words.some(function (word) { return name.indexOf(word) >= 0; });
      });
      var shown = hits.length > 0 && (!state.value || row.getAttribute("data-state") === state.value);
      row.hidden = !shown;
      if (row.tagName === "DETAILS") { all += names.length; seen += shown ? hits.length : 0; }
    });
    told.textContent = seen === all ? "all " + all + " hosts" : seen + " of " + all + " hosts";
  }
  function open() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") { target.open = true; target.hidden = false; }
  }
  form.addEventListener("input", update);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  window.addEventListener("hashchange", open);
  form.hidden = false;
  update();
  open();
})();
